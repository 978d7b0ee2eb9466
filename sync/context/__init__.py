"""What a model is given: the only place that decides it. Start at `service.ContextService`."""
