//! Every rule of the honesty pack, in every language it reads: a hit, a miss, and a look-alike where it is no code.

use std::collections::BTreeSet;

use triphammer_gate::{Gate, Packs, Rule, WorkFiles};

/// Rule, file, hit, miss, look-alike.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

const TABLE: &[Row] = &[
    ("stub-rust", "a.rs", "fn f() { todo!() }", "fn todo() {}", "const S: &str = \"todo!()\"; // todo!()"),
    (
        "stub-rust",
        "b.rs",
        "fn f() { unimplemented!(\"x\") }",
        "let todo = 1;",
        "/* /* unimplemented!() */ todo!() */",
    ),
    (
        "stub-panic-rust",
        "a.rs",
        "panic!(\"not implemented\")",
        "panic!(\"no such file\")",
        "let s = \"panic!(\\\"not implemented\\\")\"; let r = r#\"panic!(\"not implemented\")\"#;",
    ),
    (
        "stub-python",
        "a.py",
        "def f():\n    raise NotImplementedError\n",
        "except NotImplementedError:\n    x = 1\n",
        "\"\"\"\n    raise NotImplementedError\n\"\"\"\n# raise NotImplementedError\n",
    ),
    (
        "stub-javascript",
        "a.js",
        "throw new Error('Not implemented')",
        "throw new Error('not found')",
        "const s = `throw new Error('not implemented')`; // throw new Error('not implemented')",
    ),
    (
        "stub-javascript",
        "a.ts",
        "throw new TypeError(\"f is not yet implemented\")",
        "throw e",
        "const s = \"throw new Error('not implemented')\"",
    ),
    (
        "stub-go",
        "a.go",
        "panic(\"not implemented\")",
        "panic(err)",
        "s := `panic(\"not implemented\")` // panic(\"todo\")",
    ),
    (
        "stub-zig",
        "a.zig",
        "@panic(\"TODO\")",
        "@panic(\"out of memory\")",
        "const s =\n  \\\\@panic(\"TODO\")\n;",
    ),
    (
        "stub-shell",
        "a.sh",
        "echo 'not implemented'",
        "echo done",
        "# echo 'not implemented'\ncat <<'E'\necho 'not implemented'\nE",
    ),
    (
        "skipped-test-rust",
        "a.rs",
        "#[test]\n#[ignore]\nfn a() {}",
        "#[test]\nfn ignore() {}",
        "// #[ignore]\nlet s = \"#[ignore]\";",
    ),
    (
        "skipped-test-python",
        "a.py",
        "@pytest.mark.skip(reason='x')\ndef test_a(): ...\n",
        "@pytest.mark.parametrize('a', [1])\ndef test_a(): assert a\n",
        "s = '''\n@pytest.mark.skip\n'''\n# @pytest.mark.skip\n",
    ),
    (
        "skipped-test-javascript",
        "a.js",
        "it.skip('a', f)",
        "it('skip', f); iterator.skip(1)",
        "// it.skip('a', f)\nconst s = 'it.skip()'",
    ),
    (
        "skipped-test-javascript",
        "a.ts",
        "xdescribe('a', f)",
        "submit('a'); await fit.save()",
        "const s = `xit('a')`",
    ),
    ("skipped-test-go", "a_test.go", "t.Skip(\"slow\")", "t.Log(\"skip\")", "// t.Skip()\ns := \"t.Skip()\""),
    (
        "skipped-test-zig",
        "a.zig",
        "return error.SkipZigTest;",
        "return error.Other;",
        "// error.SkipZigTest\nconst s = \"error.SkipZigTest\";",
    ),
    (
        "swallowed-error-rust",
        "a.rs",
        "match f() { Ok(x) => x, Err(_) => {} }",
        "Err(_) => return None,",
        "// Err(_) => {}\nlet s = \"Err(_) => {}\";",
    ),
    (
        "swallowed-error-python",
        "a.py",
        "try:\n    f()\nexcept Exception:\n    pass\n",
        "try:\n    f()\nexcept KeyError:\n    pass\n",
        "s = 'except: pass'\n# except: pass\n",
    ),
    (
        "swallowed-error-javascript",
        "a.js",
        "try { f() } catch (e) {}",
        "try { f() } catch (e) { log(e) }",
        "// catch (e) {}\nconst s = 'catch (e) {}'",
    ),
    (
        "swallowed-error-javascript",
        "a.ts",
        "p.catch(() => {})",
        "p.catch(() => { log() })",
        "const s = `p.catch(() => {})`",
    ),
    (
        "swallowed-error-go",
        "a.go",
        "if err != nil {\n}",
        "if err != nil {\n\treturn err\n}",
        "// if err != nil {}\ns := `if err != nil {}`",
    ),
    (
        "swallowed-error-zig",
        "a.zig",
        "f() catch {};",
        "f() catch |e| return e;",
        "// f() catch {};\nconst s = \"catch {}\";",
    ),
    (
        "placeholder",
        "a.rs",
        "// placeholder implementation",
        "// The place that holds it.",
        "let s = \"placeholder implementation\";",
    ),
    ("placeholder", "a.py", "# TODO: implement this", "# implemented as a loop", "s = '# TODO: implement'"),
    (
        "placeholder",
        "a.js",
        "/* not implemented yet */",
        "// the interface is implemented by A",
        "const s = 'not implemented yet'",
    ),
    ("placeholder", "a.ts", "// dummy value", "// dumb terminals", "const s = 'dummy value'"),
    ("placeholder", "a.go", "// FIXME(ann): finish", "// finished", "s := \"TODO: implement\""),
    ("placeholder", "a.zig", "// hardcoded result", "// the result", "const s = \"hardcoded result\";"),
    ("placeholder", "a.sh", "# stub implementation", "# a stubborn one", "echo 'stub implementation'"),
    (
        "unreal-return-python",
        "a.py",
        "    return 42  # TODO\n",
        "    return 42\n",
        "s = 'return 42  # TODO'\n",
    ),
    (
        "unreal-return",
        "a.rs",
        "return 42; // placeholder",
        "return 42; // the answer",
        "let s = \"return 42; // placeholder\";",
    ),
    ("unreal-return", "a.js", "return null // stub", "return null", "const s = 'return null // stub'"),
    ("unreal-return", "a.ts", "return [] // TODO", "return todo", "const s = 'return [] // TODO'"),
    ("unreal-return", "a.go", "return nil // TODO", "return nil", "s := `return nil // TODO`"),
    ("unreal-return", "a.zig", "return 0; // dummy", "return 0;", "const s = \"return 0; // dummy\";"),
];

fn rules() -> Vec<Rule> {
    let names = vec!["honesty".to_owned()];
    let texts = triphammer_gate::collect(Some(&names), std::path::Path::new("/nowhere")).unwrap();
    let packs = Packs::parse(&texts, Some(&names)).unwrap();
    let [Gate::Rules(gate)] = packs.gates() else { panic!("one rule gate") };
    gate.rules.clone()
}

/// How often a rule hits in a file.
fn hits(rule: &str, file: &str, text: &str) -> usize {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(file), text).unwrap();
    let gate = triphammer_gate::RuleGate { name: "honesty".into(), rules: rules() };
    let verdict = gate.check(&WorkFiles::walk(dir.path()));
    verdict.findings().iter().filter(|f| f.rule == format!("honesty/{rule}")).count()
}

#[test]
fn hit_miss_and_look_alike() {
    for (rule, file, hit, miss, alike) in TABLE {
        assert_eq!(hits(rule, file, hit), 1, "{rule} misses in {file}: {hit}");
        assert_eq!(hits(rule, file, miss), 0, "{rule} hits in {file}: {miss}");
        assert_eq!(hits(rule, file, alike), 0, "{rule} is fooled in {file}: {alike}");
    }
}

#[test]
fn every_rule_is_in_the_table_for_every_language() {
    let tested: BTreeSet<(String, &str)> = TABLE
        .iter()
        .map(|(rule, file, ..)| {
            let language = triphammer_gate::Language::of(&(*file).into()).unwrap();
            (format!("honesty/{rule}"), language.word())
        })
        .collect();
    for rule in rules() {
        for language in &rule.languages {
            assert!(
                tested.contains(&(rule.rule.clone(), language.word())),
                "{} is not tested in {}",
                rule.rule,
                language.word()
            );
        }
    }
}
