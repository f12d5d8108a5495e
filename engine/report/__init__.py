"""The report as a document without fonts or pixels."""
