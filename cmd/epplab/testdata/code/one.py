# train a small net
epochs = 10
batch_size = 32
for epoch in range(epochs): train(batch_size)
