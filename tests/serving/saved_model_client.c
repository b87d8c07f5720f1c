/* Asks a SavedModel by TensorFlow's C API: raw texts in, float scores out.

   saved_model_client SAVEDMODEL INPUT OUTPUT TEXTS LIBRARY ... : INPUT and OUTPUT are
   names of tensors of the signature, TEXTS a file with one text a line, and each
   LIBRARY has ops of TF Text. Prints the scores of each text on a line. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

#define MOST_TEXTS 256

static void check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

/* The operation and the index of a name such as "serving_default_text:0". */
static TF_Output tensor_of(TF_Graph* graph, const char* name) {
  char operation[512];
  int index = 0;
  if (sscanf(name, "%511[^:]:%d", operation, &index) < 1) exit(2);
  TF_Output output = {TF_GraphOperationByName(graph, operation), index};
  if (output.oper == NULL) {
    fprintf(stderr, "There is no operation %s.\n", operation);
    exit(1);
  }
  return output;
}

static void no_release(void* data, size_t length, void* argument) {}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  TF_Status* status = TF_NewStatus();
  for (int i = 5; i < argc; ++i) {
    TF_LoadLibrary(argv[i], status);
    check(status, argv[i]);
  }
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1,
                                                     graph, NULL, status);
  check(status, argv[1]);

  static TF_TString texts[MOST_TEXTS];
  char line[65536];
  int64_t number = 0;
  FILE* file = fopen(argv[4], "r");
  if (file == NULL) return 2;
  while (number < MOST_TEXTS && fgets(line, sizeof line, file) != NULL) {
    TF_StringInit(&texts[number]);
    TF_StringCopy(&texts[number++], line, strcspn(line, "\n"));
  }
  fclose(file);

  TF_Output input = tensor_of(graph, argv[2]), output = tensor_of(graph, argv[3]);
  TF_Tensor* question = TF_NewTensor(TF_STRING, &number, 1, texts,
                                     number * sizeof(TF_TString), no_release, NULL);
  TF_Tensor* answer = NULL;
  TF_SessionRun(session, NULL, &input, &question, 1, &output, &answer, 1, NULL, 0, NULL,
                status);
  check(status, "TF_SessionRun");
  if (TF_TensorType(answer) != TF_FLOAT || TF_Dim(answer, 0) != number) return 3;
  const float* scores = TF_TensorData(answer);
  int64_t width = TF_TensorElementCount(answer) / number;
  for (int64_t row = 0; row < number; ++row) {
    for (int64_t i = 0; i < width; ++i) printf("%.9g ", scores[row * width + i]);
    printf("\n");
  }
  TF_DeleteTensor(answer);
  TF_DeleteTensor(question);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
