"""Datastores (26.1.2), which keep the summaries of transforms. No database is accessed. schema: Datastore."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import field_validator

from harness.dialects.agentspec.component import Component, ComponentField
from harness.source.models import Mistake, describe, mistaken


class OracleConnection(Component, title="a connection to an Oracle database"):
    """Base class of connections to Oracle databases."""


class TlsOracleDatabaseConnectionConfig(OracleConnection, title="a TlsOracleDatabaseConnectionConfig"):
    """A connection with TLS."""

    config_dir: str | None = None
    protocol: Literal["tcp", "tcps"] = "tcps"


class MTlsOracleDatabaseConnectionConfig(
    TlsOracleDatabaseConnectionConfig, title="an MTlsOracleDatabaseConnectionConfig"
):
    """A connection with mutual TLS."""


class PostgresConnection(Component, title="a connection to a Postgres database"):
    """Base class of connections to Postgres databases."""


class TlsPostgresDatabaseConnectionConfig(PostgresConnection, title="a TlsPostgresDatabaseConnectionConfig"):
    """A connection with TLS."""

    url: str
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "require"
    sslcert: str | None = None
    sslrootcert: str | None = None
    sslcrl: str | None = None


class Datastore(Component, title="a datastore"):
    """Base class of datastores. `datastore_schema` has the schema of the entities of each collection."""

    datastore_schema: dict[str, dict[str, Any]]

    @field_validator("datastore_schema")
    @classmethod
    def _entities_are_objects(cls, schemas: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, schema in schemas.items():
            if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
                text = f"expected an object with properties, found {describe(schema)}"
                raise mistaken(Mistake(text, (name,), code="bad-schema"))
        return schemas


class InMemoryCollectionDatastore(Datastore, title="an InMemoryCollectionDatastore"):
    """A datastore in memory."""


class OracleDatabaseDatastore(Datastore, title="an OracleDatabaseDatastore"):
    """A datastore in an Oracle database."""

    connection_config: Annotated[OracleConnection, ComponentField(OracleConnection)]


class PostgresDatabaseDatastore(Datastore, title="a PostgresDatabaseDatastore"):
    """A datastore in a Postgres database."""

    connection_config: Annotated[PostgresConnection, ComponentField(PostgresConnection)]
