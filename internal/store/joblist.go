package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// JobFilter says which jobs to list. Empty fields don't restrict.
type JobFilter struct {
	Cluster   string
	ID        int64
	User      string
	Account   string
	Partition string
	Workload  string
	State     string    // as it is shown: how the job ended, once all its runs are over
	From      time.Time // submitted then or later
	Until     time.Time // submitted before
	ArrayJob  int64     // 0 doesn't restrict
	ArrayTask int       // of ArrayJob
}

// JobPage is a part of a list of jobs, those submitted last first.
type JobPage struct {
	Jobs []record.Job
	Next int64 // what to pass as before for the next page, 0 after the last
}

// ListedJob is a job in a list, with what its runs came to.
type ListedJob struct {
	record.Job
	Shown   string            // its state, as [JobFilter] has it
	Mode    string            // of its latest decision, as are the next two; empty: there is none
	Arm     live.Arm          // of the decision
	Setting dvfsmodel.Setting // decided clocks and power limit
	// Locked are the clocks and power limits that its ended runs had, each once, the lowest first.
	Locked  []dvfsmodel.Setting
	Runs    int         // ended ones
	TimeS   live.Number // of the longest
	EnergyJ live.Number // of all GPUs; unknown where it is of a run
	// Restarted is the same with runs that epd was restarted under, whose job was
	// suspended, or whose Epilog was late, whose time and energy are in neither of the
	// two; zero where there are none.
	Restarted record.Restarted
}

// ListedPage is a part of a list of jobs with their runs.
type ListedPage struct {
	Jobs []ListedJob
	Next int64 // as in [JobPage]
}

// maxRowsScanned is how many jobs are looked at for one page where an index leads to
// more than pass the filter.
const maxRowsScanned = 2000

// Jobs lists jobs that pass a filter, those that were submitted last first, at
// most limit of them, from before a page's Next on (0: from the newest). Pages
// follow a key, so that jobs that come meanwhile move nothing. A page may hold
// fewer than limit jobs though there are more: so that no page takes for long, at
// most 2,000 jobs are looked at.
func (s *Store) Jobs(ctx context.Context, filter *JobFilter, before int64, limit int) (JobPage, error) {
	var page JobPage
	var last int64
	q, ok, err := s.pageOf(ctx, filter, before, limit)
	if err != nil || !ok {
		return page, err
	}
	rows, err := s.db.read.QueryContext(ctx, selectJobs+q.where, q.args...)
	page.Jobs, err = collect(rows, err, func(row scanner) (j record.Job, err error) {
		last, err = scanJob(row, &j)
		return j, err
	})
	if err != nil {
		return JobPage{}, fmt.Errorf("list jobs: %w", err)
	}
	page.Next = q.next(len(page.Jobs), last)
	return page, nil
}

// JobRows is [Store.Jobs] with the latest decision on each job and what its runs
// came to.
func (s *Store) JobRows(ctx context.Context, filter *JobFilter, before int64, limit int) (ListedPage, error) {
	var page ListedPage
	var last int64
	q, ok, err := s.pageOf(ctx, filter, before, limit)
	if err != nil || !ok {
		return page, err
	}
	rows, err := s.db.read.QueryContext(ctx, fmt.Sprintf(selectRows, q.where), q.args...)
	page.Jobs, err = collect(rows, err, func(row scanner) (j ListedJob, err error) {
		last, err = scanListed(row, &j)
		return j, err
	})
	if err != nil {
		return ListedPage{}, fmt.Errorf("list jobs: %w", err)
	}
	page.Next = q.next(len(page.Jobs), last)
	return page, nil
}

// selectRows joins a page of jobs with their latest decisions and their outcomes.
// Those without a submit time belong to the last job that was submitted before
// they began.
const selectRows = `
SELECT j.seq, j.cluster, j.job_id, j.submitted_us, j.token, j.user, j.account, j.partition, j.name,
	j.script_hash, j.workload,
	j.limit_s, j.nodes, j.gpus, j.state, j.array_job, j.array_task, j.shown, COALESCE(d.mode, (SELECT text FROM texts WHERE text_id = r.decided_mode), ''),
	COALESCE(d.arm, r.decided_arm, e.arm, ''), COALESCE(d.core_mhz, r.decided_core_mhz, e.core_mhz, 0),
	COALESCE(d.mem_mhz, r.decided_mem_mhz, e.mem_mhz, 0), COALESCE(d.cap_w, r.decided_cap_w, e.set_cap_w, 0),
	COALESCE(d.power_profile, r.decided_profile, e.set_power_profile, ''),
	COUNT(o.outcome_id), MAX(o.time_s),
	CASE WHEN COUNT(o.gpu_energy_j) = COUNT(o.outcome_id) THEN SUM(o.gpu_energy_j) END,
	CASE WHEN COUNT(x.restarted) > 0 THEN MAX(COALESCE(o.time_s, x.restarted ->> '$.time_s')) END,
	CASE WHEN COUNT(x.restarted) > 0 AND COUNT(COALESCE(o.gpu_energy_j, x.restarted ->> '$.gpu_energy_j')) = COUNT(o.outcome_id)
		THEN SUM(COALESCE(o.gpu_energy_j, x.restarted ->> '$.gpu_energy_j')) END,
	GROUP_CONCAT(DISTINCT CASE WHEN NOT o.unmatched THEN o.core_mhz || ' ' || o.mem_mhz || ' ' || o.set_cap_w
		|| ' ' || COALESCE(NULLIF(o.set_power_profile, ''), 'none') END)
FROM (SELECT *, (SELECT COALESCE(MIN(n.submitted_us), 1 << 62) FROM jobs AS n
		WHERE n.cluster = jobs.cluster AND n.job_id = jobs.job_id
			AND n.submitted_us > jobs.submitted_us) AS until_us
	FROM jobs %s) AS j
LEFT JOIN outcomes AS o INDEXED BY outcomes_by_job ON o.cluster = j.cluster AND o.job_id = j.job_id
	AND COALESCE(o.submitted_us, o.started_us, o.ended_us) >= j.submitted_us
		AND COALESCE(o.submitted_us, o.started_us, o.ended_us) < j.until_us
LEFT JOIN outcome_details AS x ON x.outcome_id = o.outcome_id AND o.time_s IS NULL
LEFT JOIN decisions AS d ON d.decision_id = (SELECT MAX(l.decision_id)
	FROM decisions AS l INDEXED BY decisions_by_job
	WHERE l.cluster = j.cluster AND l.job_id = j.job_id AND l.job_id != 0 AND l.created_us >= j.submitted_us
		AND l.created_us < j.until_us)
LEFT JOIN outcomes AS e ON d.decision_id IS NULL AND e.outcome_id = (SELECT l.outcome_id
	FROM outcomes AS l INDEXED BY outcomes_by_job CROSS JOIN old_runs AS q ON q.outcome_id = l.outcome_id
	WHERE l.cluster = j.cluster AND l.job_id = j.job_id AND l.job_id != 0 AND q.decided_us >= j.submitted_us
		AND q.decided_us < j.until_us ORDER BY l.decision_id DESC LIMIT 1)
LEFT JOIN old_runs AS r ON r.outcome_id = e.outcome_id
GROUP BY j.seq ORDER BY j.submitted_us DESC, j.seq DESC`

// scanListed reads a row of selectRows and returns its key.
func scanListed(row scanner, j *ListedJob) (seq int64, err error) {
	var submitted sql.NullInt64
	var limit, took, energy, restartedS, restartedJ sql.NullFloat64
	var locked sql.NullString
	err = row.Scan(&seq, &j.Cluster, &j.ID, &submitted, &j.Token, &j.User, &j.Account, &j.Partition, &j.Name,
		&j.ScriptHash, &j.Workload,
		&limit, &j.Nodes, &j.GPUs, &j.State, &j.ArrayJob, &j.ArrayTask, &j.Shown, &j.Mode, &j.Arm,
		&j.Setting.Core, &j.Setting.Mem, &j.Setting.Cap, intoProfile{&j.Setting.Profile}, &j.Runs, &took,
		&energy, &restartedS, &restartedJ, &locked)
	j.Locked = settingsOf(locked.String)
	j.Submitted = timeOf(submitted)
	j.Limit = limitOf(limit)
	j.TimeS, j.EnergyJ = knownNumber(took), knownNumber(energy)
	j.Restarted = record.Restarted{TimeS: knownNumber(restartedS), GPUEnergyJ: knownNumber(restartedJ)}
	return seq, err
}

// settingsOf reads "1087.0 877.0 0.0,0.0 0.0 250.0", the lowest first.
func settingsOf(text string) []dvfsmodel.Setting {
	var all []dvfsmodel.Setting
	for pair := range strings.SplitSeq(text, ",") {
		var s dvfsmodel.Setting
		var profile string
		if _, err := fmt.Sscan(pair, &s.Core, &s.Mem, &s.Cap, &profile); err == nil {
			s.Profile, _ = dvfsmodel.ParsePowerProfile(profile)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, dvfsmodel.Setting.Compare)
	return all
}

// jobPage is which jobs a page holds.
type jobPage struct {
	where string // what follows FROM jobs
	args  []any
	limit int
	stop  int64 // the last job that is looked at; 0: all are
}

// next returns what to pass as before for the next page, given how many jobs a page
// holds and the last of them.
func (p *jobPage) next(jobs int, last int64) int64 {
	if jobs == p.limit {
		return last
	}
	return p.stop
}

// conditions of a query.
type conditions struct {
	text []string
	args []any
}

func (c *conditions) add(given bool, condition string, args ...any) {
	if given {
		c.text, c.args = append(c.text, condition), append(c.args, args...)
	}
}

func (c *conditions) String() string { return strings.Join(c.text, " AND ") }

// pageOf finds the index that leads to the jobs of a page, and where looking
// ends; false: there is no such page any more.
func (s *Store) pageOf(ctx context.Context, f *JobFilter, before int64, limit int) (*jobPage, bool, error) {
	index, keys := f.index()
	var where conditions
	for _, column := range keys {
		where.add(true, column.name+" = ?", column.value)
	}
	where.add(index == "jobs_by_state", "shown != 'COMPLETED'")
	where.add(index == "jobs_by_array", "array_job != 0")
	where.add(true, "submitted_us >= ?", submitBound(f.From))
	where.add(!f.Until.IsZero(), "submitted_us < ?", f.Until.UnixMicro())
	if before != 0 {
		var submitted int64
		err := s.db.read.QueryRowContext(ctx, "SELECT submitted_us FROM jobs WHERE seq = ?",
			before).Scan(&submitted)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("list jobs: %w", typedError(err))
		}
		where.add(true, "(submitted_us, seq) < (?, ?)", submitted, before)
	}
	page := &jobPage{limit: limit}
	rest := f.otherConditions(keys)
	if len(rest.text) > 0 {
		var submitted int64
		err := s.db.read.QueryRowContext(ctx,
			"SELECT submitted_us, seq FROM jobs INDEXED BY "+index+" WHERE "+where.String()+
				" ORDER BY submitted_us DESC, seq DESC LIMIT 1 OFFSET ?", append(slices.Clip(where.args),
				maxRowsScanned-1)...).Scan(&submitted, &page.stop)
		switch {
		case err == nil:
			where.add(true, "(submitted_us, seq) >= (?, ?)", submitted, page.stop)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, false, fmt.Errorf("list jobs: %w", typedError(err))
		}
	}
	where.text, where.args = append(where.text, rest.text...), append(where.args, rest.args...)
	page.where = "INDEXED BY " + index + " WHERE " + where.String() +
		" ORDER BY submitted_us DESC, seq DESC LIMIT ?"
	page.args = append(where.args, limit)
	return page, true, nil
}

// submitBound returns a bound of submit times.
func submitBound(from time.Time) int64 {
	if from.IsZero() {
		return -endOfTime
	}
	return from.UnixMicro()
}

// indexKey is a column with its value.
type indexKey struct {
	name  string
	value any
}

// index returns the index that leads to a filter's jobs, and what it is searched for.
// All of them go on by submission. The one for what fewest jobs have comes first.
func (f *JobFilter) index() (name string, keys []indexKey) {
	cluster := indexKey{"cluster", f.Cluster}
	switch {
	case f.ArrayJob != 0:
		return "jobs_by_array", []indexKey{{"array_job", f.ArrayJob}, {"array_task", f.ArrayTask}}
	case f.Cluster == "":
	case f.ID != 0:
		return "sqlite_autoindex_jobs_1", []indexKey{cluster, {"job_id", f.ID}}
	case f.Workload != "":
		return "jobs_by_workload", []indexKey{cluster, {"workload", f.Workload}}
	case f.User != "":
		return "jobs_by_user", []indexKey{cluster, {"user", f.User}}
	case f.State != "" && f.State != record.Completed: // most jobs are, and have no place in it
		return "jobs_by_state", []indexKey{cluster, {"shown", f.State}}
	case f.Partition != "":
		return "jobs_by_partition", []indexKey{cluster, {"partition", f.Partition}}
	}
	return "jobs_by_time", nil
}

// otherConditions returns the conditions of a filter that an index doesn't know.
func (f *JobFilter) otherConditions(keys []indexKey) *conditions {
	var rest conditions
	add := func(column string, value any, given bool) {
		for _, key := range keys {
			given = given && key.name != column
		}
		rest.add(given, column+" = ?", value)
	}
	add("cluster", f.Cluster, f.Cluster != "")
	add("job_id", f.ID, f.ID != 0)
	add("user", f.User, f.User != "")
	add("account", f.Account, f.Account != "")
	add("partition", f.Partition, f.Partition != "")
	add("workload", f.Workload, f.Workload != "")
	add("shown", f.State, f.State != "")
	return &rest
}
