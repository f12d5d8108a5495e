"""What a runtime said of itself: its log read, held against the plan, and a failure explained."""
