"""Any scikit-learn estimator: what it pays, what it scores, what its state may name."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.scikit import EstimatorModel, ScikitLearn
from bench_models.staged import StagedModel
from bench_models.tree_average import TreeAverage
from helpers.boosted_cases import COST, examples, fit, mean_cost, path, prices

from bench_core import InputError, Task, UsageError
from bench_core.parameters import expand, parameters
from bench_core.plugins import Registry


def learner(path, **arguments):
    return ScikitLearn(estimator=f"sklearn.{path}", arguments=arguments or None)


@pytest.mark.parametrize(
    ("path_to", "pays_by_path"),
    [
        ("tree.DecisionTreeClassifier", True),
        ("ensemble.ExtraTreesClassifier", True),
        ("ensemble.HistGradientBoostingClassifier", True),
        ("linear_model.LogisticRegression", False),
        ("svm.SVC", False),
        ("ensemble.AdaBoostClassifier", False),
    ],
)
def test_only_trees_pay_by_path(path_to, pays_by_path):
    train = examples(Task.BINARY)
    arguments = {"max_depth": 1} if "Tree" in path_to or "Hist" in path_to else {}
    model = fit(learner(path_to, **arguments), train, Task.BINARY)
    assert isinstance(model, StagedModel | TreeAverage) == pays_by_path
    first = path(model, train)[0]
    assert (mean_cost(first, prices()) < COST.sum()) == pays_by_path


def test_logistic_regression_scores_its_own_log_odds():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    train = replace(examples(Task.BINARY), X=np.nan_to_num(examples(Task.BINARY).X))
    scaled = StandardScaler().fit_transform(train.X.astype(np.float64))
    expected = LogisticRegression(C=0.5).fit(scaled, train.y).decision_function(scaled)
    model = fit(learner("linear_model.LogisticRegression", C=0.5), train, Task.BINARY)
    assert np.allclose(path(model, train)[0].scores, expected, rtol=1e-6)


def test_margins_stand_in_where_there_are_no_probabilities():
    train = examples(Task.MULTICLASS)
    two = replace(train, y=np.where(train.y == 1, 0.0, train.y))  # class 1 is absent
    scores = path(fit(learner("svm.LinearSVC"), two, Task.MULTICLASS), two)[0].scores
    assert scores.shape == (300, 3)
    assert np.mean(scores.argmax(axis=1) == two.y) > 0.8
    assert not np.any(scores.argmax(axis=1) == 1)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (learner("svm.NoSuchThing"), "there is no sklearn.svm.NoSuchThing"),
        (learner("metrics.accuracy_score"), "not an estimator"),
        (learner("svm.SVR"), "wants a classifier"),
        (learner("svm.SVC", colour="red"), "colour"),
        (learner("svm.SVC", C=-1.0), "C"),
    ],
    ids=str,
)
def test_a_wrong_estimator_or_argument_is_one_line(made, message):
    with pytest.raises((UsageError, InputError), match=message) as error:
        fit(made, examples(Task.BINARY), Task.BINARY)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("path_to", ["os.system", "SVC", "sklearnish.SVC", "__main__.Mine", ""])
def test_only_paths_in_scikit_learn_are_taken(path_to):
    with pytest.raises(ValueError, match=r"estimator must be a path .* 'bench new learner'"):
        ScikitLearn(estimator=path_to)


def test_arguments_come_as_a_table_and_a_list_of_tables_is_a_grid():
    table = {"estimator": "sklearn.svm.SVC", "arguments": [{"C": 1.0}, {"C": 10.0, "gamma": 0.5}]}
    made = expand(ScikitLearn, table, Registry())
    assert [m.arguments for m in made] == [{"C": 1.0}, {"C": 10.0, "gamma": 0.5}]
    assert len({hash(m) for m in made}) == 2
    kinds = {p.name: p.kind for p in parameters(ScikitLearn)}
    assert kinds["arguments"] == "a table or none"


def fitted(path_to="linear_model.LogisticRegression", **arguments):
    model = fit(learner(path_to, **arguments), examples(Task.BINARY), Task.BINARY)
    assert isinstance(model, EstimatorModel)
    return model


def test_an_estimator_that_fits_otherwise_the_second_time_is_refused():
    state = fitted().state()
    state["probe"] = state["probe"] + 1e-12
    with pytest.raises(InputError, match=r"LogisticRegression, fitted again .* other values"):
        path(EstimatorModel.from_state(state), examples(Task.BINARY))


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        *(
            ({"path": named}, "there is no|is not an estimator")
            for named in ("os.system", "sklearn", "", "subprocess.Popen", "sklearn.os")
        ),
        (
            {"path": "sklearn.cluster.KMeans", "arguments": {"memory": "/x"}},
            "memory would read pickles",
        ),
    ],
)
def test_a_state_names_nothing_but_estimators_and_reads_no_pickles(recipe, words):
    state = fitted().state()
    state["recipe"] = {**state["recipe"], **recipe}
    with pytest.raises(UsageError, match=words):
        path(EstimatorModel.from_state(state), examples(Task.BINARY))
