"""How subcommands show what they found: documents of plain values for programs, tables and progress for people."""
