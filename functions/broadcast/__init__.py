"""The broadcast function, which passes changes from the table's stream to consumers.

Tasks do not wait for this function.
"""
