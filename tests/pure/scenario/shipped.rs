// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped scenarios.

use emud::experiment::scenario::{Overrides, ScenarioError, shipped};

#[test]
fn all_are_good_and_describe_themselves() {
    for shipped in shipped::SHIPPED {
        let scenario = shipped::find(shipped.name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(scenario.top.name, shipped.name);
        let description = &scenario.top.description;
        assert!(!description.is_empty() && !description.contains('\n'));
        let plan = scenario
            .plan(&Overrides::default())
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.text.as_deref(), Some(shipped.text));
    }
}

#[test]
fn every_file_in_the_folder_is_shipped() {
    let folder = std::fs::read_dir("scenarios").unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = files
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(
        names,
        shipped::SHIPPED.iter().map(|s| s.name).collect::<Vec<_>>()
    );
}

#[test]
fn a_misspelt_name_is_guessed() {
    let error = shipped::find("chian").unwrap_err();
    assert_eq!(error.exit_code(), 66);
    assert!(
        error.to_string().contains("did you mean `chain`?"),
        "{error}"
    );
    let ScenarioError::UnknownName { .. } = error else {
        panic!("{error}")
    };
    assert_eq!(shipped::find("./none.toml").unwrap_err().exit_code(), 66);
}
