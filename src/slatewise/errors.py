"""What slatewise raises and warns with."""

from slatewise.core.errors import DataError, DataWarning, ModelFileError, ProjectError, Skipped, printable

__all__ = ["DataError", "DataWarning", "ModelFileError", "ProjectError", "Skipped", "printable"]
