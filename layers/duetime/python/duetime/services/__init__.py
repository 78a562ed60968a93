"""The use cases of duetime, independent of AWS."""
