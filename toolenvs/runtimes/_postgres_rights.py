"""What roles may do in templates and copies, as statements of PostgreSQL.

Each text goes to the server whole, by the simple protocol. Rights on the server's own functions and
catalogs are kept in each database, so that copies of a template have them too.
"""

from __future__ import annotations

_ALLOWED_VOLATILE = (
    *("random", "setseed", "gen_random_uuid", "clock_timestamp", "timeofday", "current_query"),
    *("nextval", "currval", "lastval", "setval", "pg_sequence_last_value"),
    *("pg_sleep", "pg_sleep_for", "pg_sleep_until"),  # the statement's limit ends them
    *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size"),
    *("pg_partition_tree", "pg_partition_ancestors", "pg_is_in_recovery", "bernoulli", "system"),
)
"""Functions with effects, or whose value changes, that a statement may call. The others set
settings, take locks, write logs and large objects, run texts as statements or end sessions."""

_REFUSED_STABLE = "^(pg_stat_get_|pg_get_replication_slots|.*_to_xml)"
"""Functions that tell what other sessions do, or read a whole database."""

_REFUSED_CATALOGS = (
    "^(pg_stat_|pg_statio_|pg_(roles|user|group|shadow|authid|auth_members|database|shdescription"
    "|shdepend|db_role_setting|locks|user_mappings|replication_slots)$)"
)
"""What lists other sessions, their roles and databases: it differs from one episode to the next."""

READERS_ONLY = (
    r"""
REVOKE ALL ON DATABASE {name} FROM PUBLIC;
DO $$ DECLARE one name; BEGIN
  FOR one IN SELECT nspname FROM pg_namespace
             WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM PUBLIC', one);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', one);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO PUBLIC', one);
  END LOOP;
  FOR one IN SELECT lanname FROM pg_language WHERE lanpltrusted LOOP
    EXECUTE format('REVOKE USAGE ON LANGUAGE %I FROM PUBLIC', one);
  END LOOP;
END $$;
DO $$ DECLARE one regprocedure; BEGIN
  FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
             AND prorettype <> ALL ('{{trigger,event_trigger,internal}}'::regtype[])
             AND (provolatile = 'v' AND proname <> ALL ('{{ALLOWED}}') OR proname ~ 'REFUSED') LOOP
    EXECUTE format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', one);
  END LOOP;
END $$;
DO $$ DECLARE one name; BEGIN
  FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace
             AND relkind IN ('r', 'v') AND relname ~ 'CATALOGS' LOOP
    EXECUTE format('REVOKE ALL ON pg_catalog.%I FROM PUBLIC', one);
  END LOOP;
END $$;
REVOKE UPDATE ON pg_catalog.pg_settings FROM PUBLIC;
ANALYZE;
""".replace("ALLOWED", ",".join(_ALLOWED_VOLATILE))
    .replace("REFUSED", _REFUSED_STABLE)
    .replace("CATALOGS", _REFUSED_CATALOGS)
)
"""Makes a filled database one that whoever connects may read."""

NEW_ROLE = """
CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 4
  PASSWORD '{password}';
COMMENT ON ROLE {role} IS '{told}';
ALTER ROLE {role} SET default_transaction_read_only = {read_only};
ALTER ROLE {role} SET temp_file_limit = '1GB';
"""
"""Makes a role and says whose it is, at once: one text is one transaction. A few connections, for
one that was given up may last a moment."""

GIVE_AWAY = r"""
DO $$ DECLARE one name; BEGIN
  FOR one IN SELECT nspname FROM pg_namespace
             WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' LOOP
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO {role}', one);
    EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO {role}', one);
    EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO {role}', one);
  END LOOP;
END $$;
"""
"""Lets a role change the rows of its copy."""

LEFT_BEHIND = r"""
SELECT rolname FROM (
  SELECT rolname,
    substring(shobj_description(oid, 'pg_authid') FROM '^toolenvs client (\d+)$')::bigint AS client
  FROM pg_roles WHERE rolname ~ '^toolenvs_[0-9a-f]{16}$') AS roles
WHERE client IS NOT NULL
AND NOT EXISTS (
  SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
  AND (classid::bigint << 32) | objid::bigint = client)
AND NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE usename = rolname)
"""
"""Roles whose client holds its lock no more, and that are not connected themselves."""
