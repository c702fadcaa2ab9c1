"""What holds requests up, by name: rules with thresholds, what each says, and what to do. Pure. Why something fits
nowhere is another matter: `planning/packing/fit/fit_errors.py`.

`subjects` makes of resources and measurements what is looked at, `rules` is the table, `diagnose` settles what it
finds.
"""
