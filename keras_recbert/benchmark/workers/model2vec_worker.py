"""A static model that Model2Vec distils from a BERT, with logistic regression."""

import pathlib

from answering import serve_answers

DIMENSIONS = 256
MODEL, CLASSIFIER = "static", "classifier.joblib"


def load():
    import joblib  # noqa: F401
    import model2vec  # noqa: F401
    import sklearn  # noqa: F401

    return ["model2vec", "scikit-learn"]


def fit(texts, labels, job):
    import joblib
    from model2vec.distill import distill
    from sklearn.linear_model import LogisticRegression

    model = distill(job["weights"], pca_dims=DIMENSIONS)
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(model.encode(texts), labels)
    folder = pathlib.Path(job["folder"])
    model.save_pretrained(str(folder / MODEL))
    joblib.dump(classifier, folder / CLASSIFIER)


def open_system(folder):
    import joblib
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(str(folder / MODEL))
    classifier = joblib.load(folder / CLASSIFIER)

    def answer(texts):
        # Its own processes would not be one thread.
        vectors = model.encode(texts, use_multiprocessing=False)
        return classifier.predict(vectors).tolist()

    parameters = model.embedding.size + classifier.coef_.size
    return answer, parameters + classifier.intercept_.size


if __name__ == "__main__":
    serve_answers(load, open_system, fit)
