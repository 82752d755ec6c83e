"""Files, folders, locks and large arrays: what all parts need to read and write safely."""
