"""Model forms and numerics that several methods share; nothing here is a plugin."""
