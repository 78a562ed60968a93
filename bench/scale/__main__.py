"""Simulates every case, and prints the tables of `docs/scale.md`: `python -m bench.scale`."""

from bench.scale.tables import case_table, fair_table, step_table

if __name__ == "__main__":
    print("\n".join([*case_table(), "", *fair_table(), "", *step_table()]))
