"""What slatewise raises and warns with."""

from slatewise.core.errors import ClusterError, DataError, DataWarning, ModelFileError, ProjectError, Skipped, printable

__all__ = ["ClusterError", "DataError", "DataWarning", "ModelFileError", "ProjectError", "Skipped", "printable"]
