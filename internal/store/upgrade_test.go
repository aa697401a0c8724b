package store_test

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store"
)

// A database of any earlier schema, with rows in every table, comes to the schema that a
// new one has, and keeps the rows.
func TestAnUpgradedDatabaseHasTheSchemaOfANewOneAndAllItsRows(t *testing.T) {
	_, fresh := openNew(t)
	want, newest := schemaOf(t, fresh), schemaVersion(t, fresh)
	olds := map[string]string{
		"as schema 10 was dumped": dumped(t, "schema10"), "as schema 12 was dumped": dumped(t, "schema12"),
	}
	for schema := 1; schema <= newest; schema++ {
		olds[fmt.Sprintf("brought to schema %d", schema)] = ofSchema(t, schema)
	}
	for name, path := range olds {
		t.Run(name, func(t *testing.T) {
			before := rowsOf(t, path)
			open(t, path, nil)
			wantSchema(t, path, want)
			if got := schemaVersion(t, path); got != newest {
				t.Errorf("schema %d, a new one has %d", got, newest)
			}
			if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
				t.Errorf("Check found %q, %v", found, err)
			}
			after := rowsOf(t, path)
			delete(before, "holdouts") // nothing was ever written there
			if strings.Contains(name, "10 was dumped") {
				maps.DeleteFunc(before, func(table string, _ []map[string]string) bool { // made anew
					return slices.Contains([]string{"energy_sums", "run_days", "outcome_months"}, table)
				})
			}
			for table, rows := range before {
				wantRows(t, table, after[table], rows)
			}
		})
	}
}

// wantSchema wants tables and indexes, and no others.
func wantSchema(t *testing.T, path string, want map[string]string) {
	t.Helper()
	got := schemaOf(t, path)
	for what := range want {
		if got[what] != want[what] {
			t.Errorf("%s\n is %s\nnew %s", what, got[what], want[what])
		}
	}
	if len(got) != len(want) {
		t.Errorf("it has %d tables and indexes, a new one %d", len(got), len(want))
	}
}

// ofSchema makes a database of a schema: records of the first one, brought there as an
// epd of then did, and a row more in each of its tables.
func ofSchema(t *testing.T, schema int) string {
	t.Helper()
	path := schema1(t)
	steps, err := filepath.Glob(filepath.Join("migrations", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(steps)
	for _, step := range steps[:schema-1] {
		script, err := os.ReadFile(filepath.Clean(step))
		if err != nil {
			t.Fatal(err)
		}
		execute(t, path, string(script))
	}
	execute(t, path, "PRAGMA user_version = "+strconv.Itoa(schema))
	for _, table := range tableNames(t, path) {
		columns := columnsOf(t, path, table)
		names, values := make([]string, 0, len(columns)), make([]string, 0, len(columns))
		for _, name := range slices.Sorted(maps.Keys(columns)) {
			value := map[string]string{
				"INTEGER": "77", "REAL": "0.5", "TEXT": `'{"node":"n7"}'`, "BLOB": "x'07'",
			}[columns[name]]
			if name == "outcome_id" {
				value = "1" // details go with an outcome
			}
			names, values = append(names, name), append(values, value)
		}
		execute(t, path, fmt.Sprintf("INSERT OR REPLACE INTO %s (%s) VALUES (%s)", table,
			strings.Join(names, ", "), strings.Join(values, ", ")))
	}
	return path
}

// schemaOf is what makes each table and index, without comments and the quotes and
// blanks of a table that was made anew.
func schemaOf(t *testing.T, path string) map[string]string {
	t.Helper()
	rows, err := raw(t, path).QueryContext(t.Context(),
		"SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]string{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(regexp.MustCompile(`--[^\n]*`).ReplaceAllString(text, ""), `"`, "")
		text = strings.Join(strings.Fields(text), " ")
		all[name] = regexp.MustCompile(` ?([(),]) ?`).ReplaceAllString(text, "$1")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// columnsOf are the types of a table's columns.
func columnsOf(t *testing.T, path, table string) map[string]string {
	t.Helper()
	rows, err := raw(t, path).QueryContext(t.Context(), "SELECT name, type FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		all[name] = kind
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// rowsOf are the rows of each table, by column as SQLite quotes them.
func rowsOf(t *testing.T, path string) map[string][]map[string]string {
	t.Helper()
	all := map[string][]map[string]string{}
	for _, table := range tableNames(t, path) {
		names := slices.Sorted(maps.Keys(columnsOf(t, path, table)))
		rows, err := raw(t, path).QueryContext(t.Context(),
			"SELECT quote("+strings.Join(names, "), quote(")+") FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		all[table] = scanned(t, rows, names)
	}
	return all
}

// scanned reads rows of text.
func scanned(t *testing.T, rows *sql.Rows, names []string) (all []map[string]string) {
	t.Helper()
	defer func() { _ = rows.Close() }()
	cells := make([]string, len(names))
	into := make([]any, len(names))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = cells[i]
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// wantRows wants each row of before with all that it had, except what can't be and was
// set aside.
func wantRows(t *testing.T, table string, got, want []map[string]string) {
	t.Helper()
	if len(got) < len(want) {
		t.Errorf("%s has %d rows of %d", table, len(got), len(want))
	}
	for _, row := range want {
		if !slices.ContainsFunc(got, func(other map[string]string) bool { return keeps(other, row) }) {
			t.Errorf("%s has no more %v", table, row)
		}
	}
}

// keeps reports whether a row has all that it had before.
func keeps(row, before map[string]string) bool {
	spoilt := slices.Contains([]string{"'run-000003'", "'run-000004'", "'run-000005'", "'run-000006'"},
		before["run_id"])
	for name, was := range before {
		measured := strings.HasSuffix(name, "_j") || strings.HasSuffix(name, "_w") ||
			strings.HasSuffix(name, "_source") || name == "time_s"
		if got, there := row[name]; there && got != was && (!spoilt || !measured) {
			return false
		}
	}
	return true
}
