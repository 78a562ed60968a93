"""The docs say what the code says: generated sections are current, and whatever a page names is there."""
