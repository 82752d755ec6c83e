"""Files, folders, locks and large arrays: safe reading and writing for all packages."""
