//! Dropping stored data.

use triphammer_guard::Irreversible::DataLoss;
use triphammer_guard::What;

use super::Expect::{self, Fine, Opaque, Refused, Unsure};

pub(crate) const ROWS: &[(&str, Expect)] = &[
    ("psql -c 'DROP TABLE users'", Refused(DataLoss)),
    ("psql -d x -c \"drop database y\"", Refused(DataLoss)),
    ("psql --command='TRUNCATE a'", Refused(DataLoss)),
    ("psql -qc 'DELETE FROM a'", Refused(DataLoss)),
    ("psql x <<EOF\nDROP TABLE a;\nEOF", Refused(DataLoss)),
    ("echo 'DROP TABLE a' | psql x", Refused(DataLoss)),
    ("psql x <<< 'DROP SCHEMA s'", Refused(DataLoss)),
    ("mysql -e 'DROP DATABASE x'", Refused(DataLoss)),
    ("mysql -u root -psecret x -e \"delete from a;\"", Refused(DataLoss)),
    ("sqlite3 app.db 'DROP TABLE a'", Refused(DataLoss)),
    ("sqlite3 app.db \"select 1; delete from a\"", Refused(DataLoss)),
    ("docker exec db psql -U x -c 'DROP TABLE a'", Unsure(DataLoss)),
    ("ssh host \"psql -c 'DROP TABLE a'\"", Refused(DataLoss)),
    ("dropdb x", Refused(DataLoss)),
    ("mysqladmin drop x", Refused(DataLoss)),
    ("redis-cli FLUSHALL", Refused(DataLoss)),
    ("redis-cli -h x flushdb", Refused(DataLoss)),
    ("mongosh x --eval 'db.dropDatabase()'", Refused(DataLoss)),
    ("mongo x --eval 'db.users.drop()'", Refused(DataLoss)),
    ("npx prisma migrate reset", Refused(DataLoss)),
    ("bundle exec rails db:drop", Refused(DataLoss)),
    ("php artisan migrate:fresh", Refused(DataLoss)),
    ("python manage.py flush", Refused(DataLoss)),
    ("docker volume rm x", Refused(DataLoss)),
    ("docker compose down -v", Refused(DataLoss)),
    ("crontab -r", Refused(DataLoss)),
    ("crontab -u me -r", Refused(DataLoss)),
    ("wrangler d1 execute x --command 'DROP TABLE a'", Refused(DataLoss)),
    ("$PSQL -c 'DROP TABLE a'", Unsure(DataLoss)),
    ("psql -c 'select 1'", Fine),
    ("psql -c 'DELETE FROM a WHERE id = 1'", Fine),
    ("psql -c \"select 'DROP TABLE a'\"", Fine),
    ("psql -c '-- DROP TABLE a'", Fine),
    ("psql \"$URL\" -c \"$SQL\"", Opaque(What::NotLiteral)),
    ("psql -l", Fine),
    ("mysql -e 'show tables'", Fine),
    ("sqlite3 :memory: 'DROP TABLE a'", Fine),
    ("sqlite3 app.db .tables", Fine),
    ("redis-cli GET flushall:x", Fine),
    ("crontab -l", Fine),
    ("docker compose down", Fine),
    ("docker volume ls", Fine),
    ("cat > migration.sql <<EOF\nDROP TABLE a;\nEOF", Fine),
    ("grep -rn 'DROP TABLE' migrations", Fine),
    ("rails db:migrate", Fine),
];

#[test]
fn statements_and_tools_that_drop_data_are_found() {
    super::check(ROWS);
}
