"""Linearizes parse trees and repairs a model's output (Section 6.3)."""
