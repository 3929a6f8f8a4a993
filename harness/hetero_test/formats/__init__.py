"""Files that others wrote or edit: JSON and TOML, read with bounds and told with line numbers."""
