"""The seam to the driver, real and simulated, and who reads it when."""
