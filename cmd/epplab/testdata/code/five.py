# train net
epochs = 5
batch_size = 64
for epoch in range(epochs): train(batch_size)
