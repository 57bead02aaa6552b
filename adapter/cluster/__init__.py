"""What the pods of the cluster are and what they ask for, whoever measures their devices."""
