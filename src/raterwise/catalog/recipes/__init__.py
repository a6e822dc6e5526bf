"""How the metrics of the catalog get from predictions to a table, by family."""
