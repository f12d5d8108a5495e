"""The budget: what each rank holds, by region."""
