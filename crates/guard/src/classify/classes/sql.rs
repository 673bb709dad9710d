//! What a statement in SQL drops. Words and quotes are read, not the grammar.

/// Why one of the statements in `text` drops data; nothing where none does.
pub(super) fn loss(text: &str) -> Option<String> {
    words(text).split(|word| word == ";").find_map(statement)
}

fn statement(words: &[String]) -> Option<String> {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    // `psql` and others run `\` commands; a statement may follow what stands in front of it.
    match word(0) {
        "DROP" => {
            let what = ["TABLE", "DATABASE", "SCHEMA", "KEYSPACE", "TABLESPACE", "COLLECTION", "OWNED"];
            what.contains(&word(1)).then(|| format!("`DROP {}` drops data", word(1)))
        }
        "TRUNCATE" => Some("`TRUNCATE` empties a table".to_owned()),
        "ALTER" => words
            .windows(2)
            .any(|pair| pair[0] == "DROP" && matches!(pair[1].as_str(), "COLUMN" | "PARTITION"))
            .then(|| "`ALTER TABLE … DROP` drops data".to_owned()),
        "EXPLAIN" => None,
        _ => {
            let at = words.windows(2).position(|pair| pair[0] == "DELETE" && pair[1] == "FROM")?;
            let starts = at == 0 || word(0) == "WITH";
            let bounded = words[at..].iter().any(|word| word == "WHERE" || word == "USING");
            (starts && !bounded).then(|| "`DELETE FROM` without `WHERE` empties a table".to_owned())
        }
    }
}

/// Words in capitals, without comments and without what is quoted; `;` is a word.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            word.extend(c.to_uppercase());
            continue;
        }
        if !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        match c {
            ';' => out.push(";".to_owned()),
            '\'' | '"' => {
                // A quoted name or text: no keyword, whatever it holds.
                while chars.next().is_some_and(|inner| inner != c) {}
                out.push("''".to_owned());
            }
            '`' => {
                while chars.next().is_some_and(|inner| inner != c) {}
                out.push("''".to_owned());
            }
            '-' if chars.peek() == Some(&'-') => while chars.next().is_some_and(|inner| inner != '\n') {},
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                let mut last = ' ';
                for inner in chars.by_ref() {
                    if last == '*' && inner == '/' {
                        break;
                    }
                    last = inner;
                }
            }
            _ => {}
        }
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::loss;

    #[test]
    fn statements_are_read_word_by_word() {
        for (text, drops) in [
            ("DROP TABLE users", true),
            ("drop\n  table if exists users;", true),
            ("select 1; DROP DATABASE x", true),
            ("/* DROP TABLE a */ select 1", false),
            ("/* a */ DROP /* b */ SCHEMA s", true),
            ("-- DROP TABLE a\nselect 1", false),
            ("select 'DROP TABLE a'", false),
            ("select '; DROP TABLE a'", false),
            ("insert into log values ('a'';DROP TABLE b')", false),
            ("TRUNCATE a", true),
            ("select truncate(1.5, 1)", false),
            ("DELETE FROM a", true),
            ("DELETE FROM a;", true),
            ("DELETE FROM a WHERE id = 1", false),
            ("delete from \"where\"", true),
            ("with x as (select 1) delete from a", true),
            ("EXPLAIN DELETE FROM a", false),
            ("ALTER TABLE a DROP COLUMN b", true),
            ("ALTER TABLE a ADD COLUMN b int", false),
            ("DROP INDEX i", false),
            ("CREATE TABLE drop_table (a int)", false),
            ("", false),
        ] {
            assert_eq!(loss(text).is_some(), drops, "{text}");
        }
    }
}
