"""What a person looks at while a model trains."""
