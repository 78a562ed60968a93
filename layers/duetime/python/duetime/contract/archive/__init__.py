"""The form of archived tasks."""
