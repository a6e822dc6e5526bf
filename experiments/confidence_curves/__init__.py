"""CCC: can a network learn how sure an ensemble is? (`distillation`)."""
