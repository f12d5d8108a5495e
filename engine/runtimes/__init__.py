"""What each runtime reserves, rounds and replicates, by version."""
