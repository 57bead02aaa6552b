"""The pods of the cluster and what they request, whoever measures their devices."""
