"""The room where a sizing is handed over: the report as a PDF."""
