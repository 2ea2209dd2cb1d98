"""What trainers make their own batches of, from rows that Alidade exported (exporters/README.md): a module a trainer.

A module imports its trainer when a function is called, so importing it needs nothing but this package.
"""
