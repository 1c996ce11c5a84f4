"""Text that training and exports both read: trees and placeholders."""
