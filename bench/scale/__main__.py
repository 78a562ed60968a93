"""Simulates all cases, and prints the tables for `docs/scale.md`: `python -m bench.scale`."""

from bench.scale.tables import case_table, fair_table, step_table

if __name__ == "__main__":
    print("\n".join([*case_table(), "", *fair_table(), "", *step_table()]))
