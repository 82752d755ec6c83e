"""Model forms and numerics that several methods share; it holds no plugins."""
