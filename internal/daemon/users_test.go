package daemon_test

import (
	"os/user"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/daemon"
)

func TestUsersAreFoundByTheirNames(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	a := &daemon.Access{}
	for range 2 { // the second is remembered
		uid, name, ok := a.User(me.Username)
		if !ok || strconv.Itoa(int(uid)) != me.Uid || name != me.Username {
			t.Errorf("%s is %d, %q, %v", me.Username, uid, name, ok)
		}
		if uid, name, ok := a.User("no-such-user"); ok {
			t.Errorf("an unknown user is %d, %q", uid, name)
		}
		if uid, _, ok := a.User(me.Uid); ok && strconv.Itoa(int(uid)) == me.Uid {
			t.Errorf("a number is taken for a name")
		}
	}
}
