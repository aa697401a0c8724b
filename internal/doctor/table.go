package doctor

import "github.com/epplan/epplan/slurm/hooks"

// Checks returns all of them, in the order in which they are told.
func Checks() []Check {
	return append(slurmChecks(), epdChecks()...)
}

func slurmChecks() []Check {
	return []Check{
		{
			"munge", Both, "a credential made and read, by Slurm's munged and by epd's",
			[]*Fault{mungeDown, mungeHung, mungeWrong},
			lookMunge,
		},
		{"slurm-version", Both, "Slurm's release", []*Fault{slurmMissing, slurmTooOld, slurmNew}, lookVersion},
		{"slurmctld", Both, "whether slurmctld answers", []*Fault{ctldDown, ctldHung}, lookCtld},
		{
			"slurm-speed", Head, "how long Slurm takes to tell epd of one job, and of all",
			[]*Fault{jobSlow, queueSlow},
			lookSpeed,
		},
		{
			"nodes", Both, "nodes that are down, or drained by a hook; on a node itself alone",
			[]*Fault{nodeSilent, nodeDrained},
			lookNodes,
		},
		{"job-submit", Head, "Slurm's Lua plugin", []*Fault{pluginOff, pluginMissing}, bySettings(lookPlugin)},
		{
			"submit-script", Head, "job_submit.lua and epplan.lua: there, read by Lua, called",
			[]*Fault{scriptMissing, scriptForeign, scriptBroken, moduleMissing, moduleChanged, moduleOld},
			bySettings(lookScript),
		},
		{
			"submit-socket", Head, "where and how epplan.lua asks epd",
			[]*Fault{moduleSocket, socketLibrary},
			bySettings(lookModule),
		},
		{
			"prolog", Both, "Prolog: set, its files there, executable and ours, which runs last",
			[]*Fault{hookUnset, hookNoMatch, hookMode, hookForeign, prologNotLast},
			newHookCheck(hooks.Prolog, "Prolog", "no clock is set for any job"),
		},
		{
			"epilog", Both, "Epilog: the same, but ours runs first; and where it looks for the journal",
			[]*Fault{hookUnset, hookNoMatch, hookMode, hookForeign, epilogNotFirst, epilogJournal},
			lookEpilog,
		},
		{"prolog-flags", Both, "PrologFlags", []*Fault{flagsMissing}, bySettings(lookFlags)},
		{
			"hook-timeouts", Both, "Slurm's timeouts of Prolog and Epilog",
			[]*Fault{timeoutShort},
			bySettings(lookTimeouts),
		},
		{
			"priority", Head, "how priorities are made, where epd orders the queue",
			[]*Fault{priorityBasic, priorityFlat, priorityLow},
			lookPriority,
		},
		{"private-data", Head, "what Slurm hides from epd", []*Fault{privateJobs}, bySettings(lookPrivate)},
		{
			"power-saving", Head, "Slurm's power saving, where nodes are to sleep",
			[]*Fault{sleepProgram, sleepMode, sleepTimeout},
			lookPower,
		},
		{
			"gres", Both, "GPUs as Slurm counts them and as epd does",
			[]*Fault{gresOff, gresCount},
			bySettings(lookGres),
		},
		{"accounting", Head, "Slurm's accounting", []*Fault{accountingOff}, bySettings(lookAccounting)},
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
			"sockets", Both, "modes of epd's sockets, and who can reach them",
			[]*Fault{socketOpen, socketForeign, socketClosed, socketFolder, publicGone},
			lookSockets,
		},
		{
			"controller-link", Node, "the controllers that this node's agent asks, and their clocks",
			[]*Fault{linkDown, linkRefused, keyUnusable, keyRefused, clockSkewed, clockSkewedFar},
			lookLink,
		},
		{
			"versions", Both, "versions of epplan, agent and controller",
			[]*Fault{versionsDiffer},
			lookVersions,
		},
		{
			"config", Head, "the configuration: right, readable by epd, in force; its modes",
			[]*Fault{configWrong, configMissing, configClosed, configStale, configDoubtful},
			lookConfig,
		},
		{"site-clocks", Head, "whether somebody else holds GPUs down", []*Fault{suspectedLimit}, lookSiteClocks},
		{
			"slurm-sync", Head, "whether Slurm answers epd",
			[]*Fault{syncFails, slurmUnread, foreignComments},
			lookSync,
		},
		{
			"hook-calls", Head, "jobs with GPUs whose Prolog, or call at submission, never reached epd",
			[]*Fault{prologMissed, submitMissed},
			lookMissedHooks,
		},
		{
			"levers", Head, "what an epd that has ended left in Slurm's queue and nodes",
			[]*Fault{leversLeft},
			lookLevers,
		},
		{
			"gpus", Node, "GPUs that epd sees, which is which in Slurm, and whether their drivers obey",
			[]*Fault{gpusNone, gpuNumbers, gpuLost, gpuStuck, gpuRefused, gpuForeignClocks, gpuUnsure},
			lookGPUs,
		},
		{
			"persistence", Node, "whether the driver holds GPUs that nobody uses open",
			[]*Fault{gpuPersistence},
			lookPersistence,
		},
		{"journal", Node, "locks that no run needs", []*Fault{lockOrphaned, journalOrphaned}, lookJournal},
		{
			"spool", Node, "outcomes that the controller hasn't taken",
			[]*Fault{spoolOld, spoolFull, spoolAside},
			lookSpool,
		},
		{
			"store", Head, "the records: sound, and written to",
			[]*Fault{storeDamaged, storeMoved, storeTrouble, storeLost},
			lookStore,
		},
		{"disk", Both, "room for journal and records", []*Fault{diskLow, diskFull}, lookDisk},
		{
			"state", Both, "modes and owners of epd's folders",
			[]*Fault{stateOpen, stateOwner, stateRefused},
			lookState,
		},
		{"troubles", Node, "what went wrong last", []*Fault{recentTrouble}, lookTrouble},
		{"units", Both, "systemd's units of epd", []*Fault{unitFailed, unitDisabled, unitNone}, lookUnits},
	}
}
