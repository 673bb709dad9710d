//! Taking the machine or its services down.

use triphammer_guard::Irreversible::Machine;

use super::Expect::{self, Fine, Refused, Unsure};

pub(crate) const ROWS: &[(&str, Expect)] = &[
    ("reboot", Refused(Machine)),
    ("sudo shutdown -h now", Refused(Machine)),
    ("poweroff", Refused(Machine)),
    ("halt", Refused(Machine)),
    ("init 0", Refused(Machine)),
    ("systemctl reboot", Refused(Machine)),
    ("sudo systemctl stop nginx", Refused(Machine)),
    ("systemctl disable --now sshd", Refused(Machine)),
    ("service nginx stop", Refused(Machine)),
    ("kill -9 -1", Refused(Machine)),
    ("kill -KILL -- -1", Refused(Machine)),
    ("kill -s KILL -1", Refused(Machine)),
    ("$MAYBE reboot", Unsure(Machine)),
    ("systemctl status nginx", Fine),
    ("systemctl --user stop x", Fine),
    ("service nginx status", Fine),
    ("kill -9 1234", Fine),
    ("kill -1 1234", Fine),
    ("kill -- -1234", Fine),
    ("kill %1", Fine),
    ("shutdown -c", Fine),
    ("history -c", Fine),
    ("git init 0", Fine),
    ("echo reboot", Fine),
];

#[test]
fn taking_the_machine_down_is_found() {
    super::check(ROWS);
}
