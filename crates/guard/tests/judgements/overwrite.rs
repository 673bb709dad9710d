//! Overwriting, inside and outside of the workspace.

use triphammer_guard::Irreversible::OverwriteOutside;

use super::Expect::{self, Fine, Refused, Unsure};

pub(crate) const ROWS: &[(&str, Expect)] = &[
    ("echo x > /etc/passwd", Refused(OverwriteOutside)),
    ("> /etc/passwd", Refused(OverwriteOutside)),
    (": >| /etc/passwd", Refused(OverwriteOutside)),
    ("make &> /var/log/x", Refused(OverwriteOutside)),
    ("make >& /var/log/x", Refused(OverwriteOutside)),
    ("make 2> ../log", Refused(OverwriteOutside)),
    ("make > ~/log", Refused(OverwriteOutside)),
    ("{ echo a; echo b; } > /etc/x", Refused(OverwriteOutside)),
    ("cat <<EOF > /etc/x\na\nEOF", Refused(OverwriteOutside)),
    ("cd / && echo > x", Refused(OverwriteOutside)),
    ("echo x | sudo tee /etc/hosts", Refused(OverwriteOutside)),
    ("dd if=/dev/zero of=/dev/sda bs=1M", Refused(OverwriteOutside)),
    ("cat x > /dev/sda", Refused(OverwriteOutside)),
    ("mkfs.ext4 /dev/sda1", Refused(OverwriteOutside)),
    ("mkfs -t ext4 /dev/sda1", Refused(OverwriteOutside)),
    ("wipefs -a /dev/sda", Refused(OverwriteOutside)),
    ("shred -u ~/.ssh/id", Refused(OverwriteOutside)),
    ("truncate -s 0 /var/log/syslog", Refused(OverwriteOutside)),
    ("blkdiscard /dev/sda", Refused(OverwriteOutside)),
    ("chmod -R 777 /", Refused(OverwriteOutside)),
    ("chown -R me: /usr", Refused(OverwriteOutside)),
    ("chmod --recursive u+w ..", Refused(OverwriteOutside)),
    ("ssh host 'cat > /etc/nginx.conf' < x", Refused(OverwriteOutside)),
    ("echo x > /etc/$X", Unsure(OverwriteOutside)),
    ("dd if=x.img of=\"$DEV\"", Unsure(OverwriteOutside)),
    ("make > log", Fine),
    ("make > log 2>&1", Fine),
    ("make 2>&1 >/dev/null", Fine),
    ("make &>/dev/null", Fine),
    ("echo x >&2", Fine),
    ("exec 3>&-", Fine),
    ("echo x > /dev/stderr", Fine),
    ("echo x > /tmp/x", Fine),
    ("echo x > \"$(mktemp)\"", Fine),
    ("echo x > $OUT", Fine),
    ("echo x >> /etc/hosts", Fine),
    ("echo 'a > /etc/passwd'", Fine),
    ("[[ a > /etc/passwd ]]", Fine),
    ("(( 1 > 2 ))", Fine),
    ("awk '$1 > 5' x", Fine),
    ("tee -a /etc/hosts < x", Fine),
    ("make | tee build.log", Fine),
    ("diff x /etc/passwd", Fine),
    ("dd if=/dev/zero of=disk.img bs=1M count=1", Fine),
    ("dd if=/dev/sda of=/dev/null", Fine),
    ("mkfs.ext4 disk.img", Fine),
    ("wipefs /dev/sda", Fine),
    ("truncate -s 0 build/log", Fine),
    ("chmod -R u+w build", Fine),
    ("chmod +x /usr/local/bin/x", Fine),
    ("cat < /etc/passwd", Fine),
];

#[test]
fn overwriting_is_judged_by_where_it_leads() {
    super::check(ROWS);
}
