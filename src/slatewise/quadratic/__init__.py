"""Rankings under any quadratic score, and slates under pair terms."""
