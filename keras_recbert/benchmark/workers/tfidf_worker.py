"""TF-IDF of words and pairs of words with logistic regression, by scikit-learn."""

from answering import serve_answers

FILE = "model.joblib"


def load():
    import joblib  # noqa: F401
    import sklearn  # noqa: F401

    return ["scikit-learn"]


def fit(texts, labels, job):
    import pathlib

    import joblib
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000)
    )
    model.fit(texts, labels)
    joblib.dump(model, pathlib.Path(job["folder"]) / FILE)


def open_system(folder):
    import joblib

    model = joblib.load(folder / FILE)
    parameters = model[-1].coef_.size + model[-1].intercept_.size
    return (lambda texts: model.predict(texts).tolist()), parameters


if __name__ == "__main__":
    serve_answers(load, open_system, fit)
