"""Calendar files of other programs."""
