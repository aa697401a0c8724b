package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/nodekey"
)

// keysCommand is about the keys by which agents and controller prove who they are without munge.
func keysCommand(stdin io.Reader, stdout io.Writer) *cli.Command {
	key := &cli.StringFlag{Name: "key", Usage: "`FILE` of this machine's own key", Value: nodekey.DefaultKey}
	trusted := &cli.StringFlag{
		Name: "trusted-keys", Usage: "`FILE` of the keys that are believed", Value: nodekey.DefaultTrusted,
	}
	sub := func(name, args, text, more string, do func(*cli.Context) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: text, UsageText: strings.TrimSpace("epd keys " + name + " [OPTIONS] " + args),
			Description: more, HideHelpCommand: true, OnUsageError: refuseUsage, Flags: flags, Action: do,
		}
	}
	return &cli.Command{
		Name: "keys", Usage: "make and enrol keys for epd --auth keys", HideHelpCommand: true,
		OnUsageError: refuseUsage,
		Subcommands: []*cli.Command{
			sub("make", "", "draw this machine's own key, and print what others are to know of it",
				"A key that is there stays as it is. Without a name it is that of the host.\n"+
					"Example: epd keys make --role controller --owner slurm",
				func(c *cli.Context) error { return makeKey(c, stdout) },
				key,
				&cli.StringFlag{Name: "role", Usage: "`ROLE` of this machine: node or controller", Value: "node"},
				&cli.StringFlag{Name: "name", Usage: "`NAME` of this machine in Slurm", DefaultText: "the host's"},
				&cli.StringFlag{Name: "owner", Usage: "`USER` as whom epd runs", DefaultText: "who makes it"}),
			sub("show", "", "print what others are to know of this machine's key", "Example: epd keys show",
				func(c *cli.Context) error {
					if err := takesArguments(c, 0, 0); err != nil {
						return err
					}
					own, err := nodekey.ReadSecret(c.String("key"))
					if err == nil {
						_, err = fmt.Fprintln(stdout, own.Public)
					}
					return err
				}, key),
			sub("add", "LINE|-", "trust machines by the lines that epd keys make prints",
				"- reads lines from standard input. All are added or none. A running epd needs no word of it.\n"+
					"Example: epd keys add 'node gpu01 7UG0qYc6fXe1Mn3yoYkq0qkV2hR6o0L4oV0p0xw3Y1k='",
				func(c *cli.Context) error { return addKeys(c, stdin, stdout) }, trusted,
				&cli.BoolFlag{Name: "replace", Usage: "revoke the keys that these machines had before"}),
			sub("remove", "ROLE NAME", "believe a machine no more",
				"A running epd needs no word of it.\nExample: epd keys remove node gpu01",
				removeKey, trusted),
			sub("list", "", "print the keys that are believed", "Example: epd keys list",
				func(c *cli.Context) error {
					if err := takesArguments(c, 0, 0); err != nil {
						return err
					}
					list, err := nodekey.ReadTrusted(c.String("trusted-keys"))
					for _, p := range list {
						_, _ = fmt.Fprintln(stdout, p)
					}
					return err
				}, trusted),
		},
	}
}

// takesArguments refuses too few and too many.
func takesArguments(c *cli.Context, least, most int) error {
	if n := c.NArg(); n < least || n > most {
		return usagef("%d arguments, want %d", n, most)
	}
	return nil
}

func makeKey(c *cli.Context, stdout io.Writer) error {
	if err := takesArguments(c, 0, 0); err != nil {
		return err
	}
	uid, gid := -1, -1
	if name := c.String("owner"); name != "" {
		owner, err := user.Lookup(name)
		if err != nil {
			return err
		}
		uid, err = strconv.Atoi(owner.Uid)
		if err != nil {
			return err
		}
		if gid, err = strconv.Atoi(owner.Gid); err != nil {
			return err
		}
	}
	own, err := nodekey.NewSecret(nodekey.Role(c.String("role")), cmp.Or(c.String("name"), nodeName(c)))
	if err != nil {
		return err
	}
	path := c.String("key")
	err = own.Write(path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s is there: epd keys show prints what others are to know of it; move it away for "+
			"a new one", path)
	case err != nil:
		return err
	}
	if uid >= 0 {
		if err := os.Chown(path, uid, gid); err != nil {
			return errors.Join(err, os.Remove(path))
		}
	}
	_, err = fmt.Fprintln(stdout, own.Public)
	return err
}

// readTrustedKeys returns the keys of a list, which need not be there.
func readTrustedKeys(c *cli.Context) ([]nodekey.Public, error) {
	list, err := nodekey.ReadTrusted(c.String("trusted-keys"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

func addKeys(c *cli.Context, stdin io.Reader, stdout io.Writer) error {
	if err := takesArguments(c, 1, 3); err != nil { //nolint:mnd // a line's words
		return err
	}
	text, source := strings.Join(c.Args().Slice(), " "), "the arguments"
	if text == "-" {
		const most = 8 << 20
		data, err := io.ReadAll(io.LimitReader(stdin, most))
		if err != nil {
			return err
		}
		text, source = string(data), "standard input"
	}
	keys, err := nodekey.ParseTrusted(source, text)
	if err != nil {
		return err
	}
	list, err := readTrustedKeys(c)
	if err != nil {
		return err
	}
	all, err := nodekey.Enrol(list, keys, c.Bool("replace"))
	if err == nil {
		err = nodekey.WriteTrusted(c.String("trusted-keys"), all)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		stdout,
		"%d keys are believed, %d of them as before\n",
		len(all),
		countCommonKeys(list, all),
	)
	return err
}

// countCommonKeys counts the keys that are in two lists.
func countCommonKeys(before, after []nodekey.Public) (count int) {
	for _, p := range after {
		if slices.ContainsFunc(before, func(q nodekey.Public) bool { return q.String() == p.String() }) {
			count++
		}
	}
	return count
}

func removeKey(c *cli.Context) error {
	if err := takesArguments(c, 2, 2); err != nil { //nolint:mnd // a role and a name
		return err
	}
	list, err := nodekey.ReadTrusted(c.String("trusted-keys"))
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(list), func(p nodekey.Public) bool {
		return string(p.Role) == c.Args().Get(0) && p.Name == c.Args().Get(1)
	})
	if len(left) == len(list) {
		return fmt.Errorf("%s has no key of %s %s", c.String("trusted-keys"), c.Args().Get(0), c.Args().Get(1))
	}
	return nodekey.WriteTrusted(c.String("trusted-keys"), left)
}
