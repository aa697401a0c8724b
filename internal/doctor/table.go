package doctor

import "github.com/epplan/epplan/slurm/hooks"

// Checks returns all of them, in the order in which they are told.
func Checks() []Check {
	return append(slurmChecks(), epdChecks()...)
}

func slurmChecks() []Check {
	return []Check{
		{
			"munge", Both, "credentials of Slurm's and epd's munged",
			[]*Fault{mungeDown, mungeHung, mungeWrong},
			checkMunge,
		},
		{"slurm-version", Both, "Slurm's release", []*Fault{slurmMissing, slurmTooOld, slurmNew}, checkVersion},
		{"slurmctld", Both, "whether slurmctld answers", []*Fault{ctldDown, ctldHung}, checkCtld},
		{
			"slurm-speed", Head, "how fast Slurm answers about one job, and about all",
			[]*Fault{jobSlow, queueSlow},
			checkSpeed,
		},
		{
			"nodes", Both, "nodes down, or drained by a hook; on a node only itself",
			[]*Fault{nodeSilent, nodeDrained},
			checkNodes,
		},
		{"job-submit", Head, "Slurm's Lua plugin", []*Fault{pluginOff, pluginMissing}, settingsCheck(checkPlugin)},
		{
			"submit-script", Head, "whether job_submit.lua and epplan.lua are there, load, and are called",
			[]*Fault{scriptMissing, scriptForeign, scriptBroken, moduleMissing, moduleChanged, moduleOld},
			settingsCheck(checkScript),
		},
		{
			"submit-socket", Head, "where and how epplan.lua asks epd",
			[]*Fault{moduleSocket, socketLibrary},
			settingsCheck(checkModule),
		},
		{
			"prolog", Both, "Prolog: set, files there and executable, ours last",
			[]*Fault{hookUnset, hookNoMatch, hookMode, hookForeign, prologNotLast},
			newHookCheck(hooks.Prolog, "Prolog", "no clock is set for any job"),
		},
		{
			"epilog", Both, "Epilog: the same, but ours first; and its journal",
			[]*Fault{hookUnset, hookNoMatch, hookMode, hookForeign, epilogNotFirst, epilogJournal},
			checkEpilog,
		},
		{
			"task-epilog", Node, "TaskEpilog, if epplan's: there and executable",
			[]*Fault{taskEpilog},
			settingsCheck(checkTaskEpilog),
		},
		{"prolog-flags", Both, "PrologFlags", []*Fault{flagsMissing}, settingsCheck(checkFlags)},
		{
			"hook-timeouts", Both, "Slurm's timeouts of Prolog and Epilog",
			[]*Fault{timeoutShort},
			settingsCheck(checkTimeouts),
		},
		{
			"priority", Head, "priorities, if epd orders the queue",
			[]*Fault{priorityBasic, priorityFlat, priorityLow},
			checkPriority,
		},
		{"private-data", Head, "what Slurm hides from epd", []*Fault{privateJobs}, settingsCheck(checkPrivate)},
		{
			"power-saving", Head, "Slurm's power saving, if nodes may sleep",
			[]*Fault{sleepProgram, sleepMode, sleepTimeout},
			checkPower,
		},
		{
			"gres", Both, "Slurm's and epd's count of GPUs",
			[]*Fault{gresOff, gresCount},
			settingsCheck(checkGres),
		},
		{"accounting", Head, "Slurm's accounting", []*Fault{accountingOff}, settingsCheck(checkAccounting)},
	}
}

func epdChecks() []Check {
	return []Check{
		{
			"agent", Node, "whether this node's epd answers",
			[]*Fault{epdDown, epdHung, socketGone},
			agentRole.check,
		},
		{
			"controller", Head, "whether the controller answers",
			[]*Fault{epdDown, epdHung, socketGone},
			controllerRole.check,
		},
		{
			"sockets", Both, "modes and reach of epd's sockets",
			[]*Fault{socketOpen, socketForeign, socketClosed, socketFolder, publicGone},
			checkSockets,
		},
		{
			"controller-link", Node, "the agent's controllers and their clocks",
			[]*Fault{linkDown, linkRefused, keyUnusable, keyRefused, clockSkewed, clockSkewedFar},
			checkLink,
		},
		{
			"versions", Both, "versions of epplan, agent and controller",
			[]*Fault{versionsDiffer},
			checkVersions,
		},
		{
			"config", Head, "whether the configuration is right, readable by epd and in force",
			[]*Fault{configWrong, configMissing, configClosed, configStale, configDoubtful},
			checkConfig,
		},
		{"site-clocks", Head, "whether somebody else limits GPUs", []*Fault{suspectedLimit}, checkSiteClocks},
		{
			"slurm-sync", Head, "whether Slurm answers epd",
			[]*Fault{syncFails, slurmUnread, foreignComments},
			checkSync,
		},
		{
			"hook-calls", Head, "jobs whose Prolog or submission never reached epd",
			[]*Fault{prologMissed, submitMissed},
			checkMissedHooks,
		},
		{
			"levers", Head, "what an ended epd left in Slurm's queue and nodes",
			[]*Fault{leversLeft},
			checkLevers,
		},
		{
			"gpus", Node, "GPUs: seen by epd, their numbers in Slurm, their drivers",
			[]*Fault{gpusNone, gpuNumbers, gpuLost, gpuStuck, gpuRefused, gpuForeignClocks, gpuUnsure},
			checkGPUs,
		},
		{
			"persistence", Node, "whether the driver keeps idle GPUs open",
			[]*Fault{gpuPersistence},
			checkPersistence,
		},
		{"journal", Node, "locks that no run needs", []*Fault{lockOrphaned, journalOrphaned}, checkJournal},
		{
			"spool", Node, "outcomes that the controller hasn't taken",
			[]*Fault{spoolOld, spoolFull, spoolAside},
			checkSpool,
		},
		{
			"store", Head, "the records: sound, and written to",
			[]*Fault{storeDamaged, storeMoved, storeTrouble, storeLost},
			checkStore,
		},
		{"disk", Both, "room for journal and records", []*Fault{diskLow, diskFull}, checkDisk},
		{
			"state", Both, "modes and owners of epd's folders",
			[]*Fault{stateOpen, stateOwner, stateRefused},
			checkState,
		},
		{"troubles", Node, "what went wrong last", []*Fault{recentTrouble}, checkTrouble},
		{"units", Both, "systemd's units of epd", []*Fault{unitFailed, unitDisabled, unitNone}, checkUnits},
	}
}
