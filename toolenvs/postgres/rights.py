"""What roles may do in templates and copies, as statements of PostgreSQL.

Each text goes to the server whole, by the simple protocol. Rights on the server's own functions and
catalogs are kept in each database, so that copies of a template have them too.
"""

from __future__ import annotations

import re

_ALLOWED_VOLATILE = (
    *("random", "setseed", "gen_random_uuid", "clock_timestamp", "timeofday", "current_query"),
    *("nextval", "currval", "lastval", "setval", "pg_sequence_last_value"),
    *("pg_sleep", "pg_sleep_for", "pg_sleep_until"),  # the statement's limit ends them
    *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size"),
    *("pg_partition_tree", "pg_partition_ancestors", "pg_is_in_recovery", "bernoulli", "system"),
)
"""Functions with effects, or whose value changes, that a statement may call. The others set
settings, take locks, write logs and large objects, run texts as statements or end sessions."""

_REFUSED_STABLE = (
    "^(pg_stat_get_|pg_get_replication_slots|.*_to_xml"
    "|pg_(describe|identify)_object|pg_tablespace_databases|makeaclitem$|to_regrole$"
    "|pg_(postmaster_start|conf_load)_time|xpath|xmlexists"
    "|ts_rank(_cd)?$|txid_(current|status)|pg_current_(xact_id|snapshot)|toolenvs_)"
)
"""Functions that tell what other sessions do, read a whole database, or run without an end."""

_MOST = {  # steps that take a second, about
    "MOST_EDGES": 1_000_000,
    "MOST_PLACES": 1_000_000_000,
    "MOST_PAIRS": 100_000_000,
}

_BOUNDED = r"""
CREATE OR REPLACE FUNCTION pg_temp.size_of(place int, kind oid) RETURNS text LANGUAGE sql AS $$
  SELECT CASE
    WHEN kind = 'jsonb'::regtype THEN format('octet_length($%s::text)', place)
    WHEN kind IN ('path'::regtype, 'polygon'::regtype) THEN format('npoints($%s)', place)
    WHEN kind IN ('anyarray'::regtype, 'text[]'::regtype) THEN format('cardinality($%s)', place)
    ELSE format('octet_length($%s)', place) END $$;
DO $outer$ DECLARE one record; BEGIN
  FOR one IN
    SELECT p.oid::regprocedure AS signature, p.proname AS name, p.oid,
      pg_get_function_arguments(p.oid) AS arguments,
      pg_get_function_result(p.oid) AS result,
      CASE WHEN p.pronargs = 3 THEN ', $3' ELSE '' END AS third,
      CASE WHEN p.provariadic <> 0 THEN 'VARIADIC ' ELSE '' END AS spread,
      CASE WHEN p.proisstrict THEN 'STRICT' ELSE '' END AS on_null,
      CASE WHEN p.proretset THEN 'RETURN QUERY SELECT' ELSE 'RETURN' END AS gives,
      pg_temp.size_of(1, p.proargtypes[0]) AS size,
      CASE WHEN p.proname ~ 'normalize' THEN pg_temp.size_of(1, p.proargtypes[0])
           ELSE pg_temp.size_of(2, p.proargtypes[1]) END AS other,
      CASE WHEN p.proname ~ '^(path|poly)_' THEN MOST_EDGES
           WHEN p.proname ~ '^(translate|[blr]trim|array)' THEN MOST_PAIRS
           ELSE MOST_PLACES END AS most
    FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace
      AND p.pronargs >= 2
      AND (p.proname ~ '^(translate|[blr]trim|strpos|position|replace|split_part'
                       '|string_to_(array|table)|(is_normalized|normalize)|jsonb_(contains|contained)'
                       '|array(overlap|contains|contained)|path_(distance|inter)|poly_(distance|overlap|contain|contained|same))$'
           OR p.oid = 'jsonb_delete(jsonb,text[])'::regprocedure)
  LOOP
    EXECUTE format('ALTER FUNCTION %s RENAME TO %I', one.signature, 'toolenvs_' || one.name);
    EXECUTE format('CREATE FUNCTION pg_catalog.%I(%s) RETURNS %s LANGUAGE plpgsql IMMUTABLE %s '
      'PARALLEL SAFE SECURITY DEFINER AS %L', one.name, one.arguments, one.result, one.on_null,
      format($body$ BEGIN
        IF pg_catalog.%s::bigint * pg_catalog.%s > %s THEN
          RAISE program_limit_exceeded USING MESSAGE = 'the arguments of %s exceed a size';
        END IF;
        %s pg_catalog.toolenvs_%s($1, %s$2%s);
      END $body$, one.size, one.other, one.most, one.name, one.gives, one.name, one.spread,
      one.third));
    UPDATE pg_operator SET oprcode = (
      SELECT p.oid FROM pg_proc p JOIN pg_proc old ON old.oid = one.oid
      WHERE p.pronamespace = old.pronamespace AND p.proname = one.name
        AND p.proargtypes = old.proargtypes)
    WHERE oprcode = one.oid;
  END LOOP;
END $outer$;

SET allow_system_table_mods = on;
ALTER FUNCTION pg_catalog.pg_get_userbyid(oid) RENAME TO toolenvs_userbyid;
CREATE FUNCTION pg_catalog.pg_get_userbyid(role oid) RETURNS name
  LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT coalesce(
    (SELECT rolname FROM pg_authid WHERE oid = $1
     AND (rolname = session_user OR rolname !~ '^toolenvs_[0-9a-f]{16}$')),
    ('unknown (OID=' || $1 || ')')::name) $$;
DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT schemaname, viewname, definition FROM pg_views
             WHERE schemaname = 'pg_catalog' AND definition ~ 'toolenvs_userbyid' LOOP
    EXECUTE format('CREATE OR REPLACE VIEW %I.%I AS %s', one.schemaname, one.viewname,
      replace(one.definition, 'toolenvs_userbyid', 'pg_get_userbyid'));
  END LOOP;
END $$;
RESET allow_system_table_mods;

ALTER FUNCTION information_schema._pg_char_octet_length(oid, integer) SECURITY DEFINER;
"""
BOUNDED = re.sub("MOST_[A-Z]+", lambda found: str(_MOST[found[0]]), _BOUNDED)
"""Puts checks before functions that take the product of two lengths, or the square of one, which
nothing can interrupt, and before the one that names roles, which views of the catalog show.
``information_schema.columns`` reads the encoding of the database, in a list closed to roles."""


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
