"""The catalog: what ways there are to serve a model, and what each needs."""
