"""The `paceline` command's subcommands: arguments to calls; nothing is decided here."""
