"""What a device can give: label, driver total and allocatable are three numbers."""
