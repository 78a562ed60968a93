"""Operations that clients request on tasks."""
